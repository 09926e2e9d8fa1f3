-- How much of a shard waits for the archive. Of more runs than are looked at, the caller concludes from those that were.
-- KEYS  shard (6)
-- ARGV  1: most runs to look at; 2, 3: how the keys of a run's ctl and of its events are spelt
-- Reply backlog, runs that are due some time, runs looked at, events that wait in those, time of the oldest of these (empty: none)
-- include: shard-keys
-- include: named-key
local looked, events, oldest = 0, 0, nil
for _, id in ipairs(redis.call('ZRANGE', shard.to_archive, 0, tonumber(ARGV[1]) - 1)) do
  looked = looked + 1
  local ctl = redis.call('HMGET', named_key(ARGV[2], id), 'last_seq', 'archived_seq', 'deleted_at')
  local last, archived = tonumber(ctl[1] or '0'), tonumber(ctl[2] or '0')
  if last > archived and not ctl[3] then
    events = events + last - archived
    local entry = redis.call('XRANGE', named_key(ARGV[3], id), string.format('%.0f-0', archived + 1), '+', 'COUNT', 1)[1]
    -- The time stands among an event's first fields, before anything that a model or a tool said.
    local ts = entry and tonumber(string.match(string.sub(entry[2][2], 1, 200), '"ts":(%d+%.?%d*)') or '')
    if ts and (not oldest or ts < oldest) then oldest = ts end
  end
end
return { 'backlog', redis.call('ZCARD', shard.to_archive), looked, events, oldest and string.format('%.3f', oldest) or '' }
