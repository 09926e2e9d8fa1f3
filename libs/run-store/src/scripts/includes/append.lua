-- Events into a run's stream under the id <seq>-0, the feed told of it, and the archive's time set where none is.

local feed_length = 10000

-- Dense ids, so that a reader sees a gap.
local function tell(shard, run_id, seq)
  local n = redis.call('INCR', shard.feed_n)
  redis.call('XADD', shard.feed, 'MAXLEN', '~', feed_length, string.format('%.0f-0', n), 'run', run_id, 'seq', seq)
end

-- Answers the new last seq. `write` carries run_id and archive_after_ms.
local function append_events(stream, shard, write, last_seq, events)
  if #events == 0 then return last_seq end
  for i, event in ipairs(events) do
    redis.call('XADD', stream, string.format('%.0f-0', last_seq + i), 'event', event)
  end
  local last = last_seq + #events
  tell(shard, write.run_id, last)
  redis.call('ZADD', shard.to_archive, 'NX', now_ms() + write.archive_after_ms, write.run_id)
  return last
end
