-- Runs of a session go one after the other: `current` is the one under way, the queue holds those behind it.

-- The run that the session is busy with; nil when a new one may begin at once.
local function busy_with(current, queue, ctl_spelling)
  if current and current ~= '' then
    local status = redis.call('HGET', named_key(ctl_spelling, current), 'status')
    if status and not has_ended({ status = status }) then return current end
  end
  return redis.call('LINDEX', queue, -1) or nil
end
