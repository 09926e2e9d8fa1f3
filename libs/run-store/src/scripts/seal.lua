-- Fixes the next range of events for the archive. Until it is archived the answer stays the same: same key, same bytes.
-- KEYS  shard (6), run (7)
-- ARGV  1: run id; 2: most events; 3: most bytes, but for one event that is larger alone
-- Reply sealed, first_seq, last_seq, is_end (1: the run has ended and this is all of it) | nothing
-- include: ctl
-- include: shard-keys
-- include: run-keys
local ctl = read_ctl(run.ctl)
local first, last = 0, 0
if ctl then first, last = num(ctl, 'sealed_first'), num(ctl, 'sealed_last') end
if not ctl or ctl.deleted_at or (last == 0 and num(ctl, 'archived_seq') >= num(ctl, 'last_seq')) then
  if not ctl or not (ctl.deleted_at or ctl.merge_due) then redis.call('ZREM', shard.to_archive, ARGV[1]) end
  return { 'nothing' }
end
if last == 0 then
  first = num(ctl, 'archived_seq') + 1
  local room = tonumber(ARGV[3])
  last = first - 1
  for _, entry in ipairs(redis.call('XRANGE', run.events, string.format('%.0f-0', first), '+', 'COUNT', ARGV[2])) do
    room = room - string.len(entry[2][2]) - 1
    if room < 0 and last >= first then break end
    last = last + 1
  end
  redis.call('HSET', run.ctl, 'sealed_first', first, 'sealed_last', last)
end
return { 'sealed', first, last, has_ended(ctl) and last == num(ctl, 'last_seq') and 1 or 0 }
