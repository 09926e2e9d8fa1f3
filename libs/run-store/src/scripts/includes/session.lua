-- Runs of a session go one after the other: `current` is the one under way, the queue holds those behind it.

local function is_under_way(run_id, ctl_spelling)
  local status = redis.call('HGET', named_key(ctl_spelling, run_id), 'status')
  return status and not has_ended({ status = status })
end

-- The run that the session is busy with; nil when a new one may begin at once.
local function busy_with(current, queue, ctl_spelling)
  if current and current ~= '' and is_under_way(current, ctl_spelling) then return current end
  return redis.call('LINDEX', queue, -1) or nil
end

-- The run of its session that a run has to wait for; nil where it is its turn, and where it has ended.
local function run_before(ctl, run_id, session_spelling, ctl_spelling)
  if not ctl or not ctl.session or has_ended(ctl) then return nil end
  local current = redis.call('HGET', named_key(session_spelling, ctl.session), 'current')
  return current and current ~= '' and current ~= run_id and is_under_way(current, ctl_spelling) and current or nil
end
