-- The fold's snapshot: { fields, last_seq, last_ts, epoch of the last event, generation, messages }.

local function stored_state(run, ctl, without_messages)
  return {
    redis.call('HGETALL', run.state), ctl.last_seq, ctl.last_ts, ctl.event_epoch, ctl.generation,
    without_messages and {} or redis.call('LRANGE', run.messages, 0, -1),
  }
end
