-- The sealed range is safe: the watermark moves, the stream is trimmed, and an ended run whose log is safe whole expires.
-- KEYS  shard (6), run (7)
-- ARGV  1: run id; 2, 3: first and last seq; 4: events to keep in the stream; 5: retention in ms; 6: ms until the next archiving
-- Reply archived | expiring | not_sealed (nothing was changed)
-- include: ctl
-- include: shard-keys
-- include: run-keys
-- include: expiry
-- include: append
-- A run whose segments are to be merged must still be there to be found when that fails at first.
local merge_within_ms = 3600000
local ctl = read_ctl(run.ctl)
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if not ctl or num(ctl, 'sealed_first') ~= first or num(ctl, 'sealed_last') ~= last then return { 'not_sealed' } end

local now, last_seq = now_ms(), num(ctl, 'last_seq')
-- A run that was restored has segments that nobody counted.
local segments = num(ctl, 'segments') + (first > 1 and num(ctl, 'segments') == 0 and 2 or 1)
redis.call('HSET', run.ctl, 'archived_seq', last, 'sealed_first', 0, 'sealed_last', 0, 'segments', segments)
-- Some readers are shown only what is in the archive.
tell(shard, ARGV[1], last)
redis.call('XTRIM', run.events, 'MINID', string.format('%.0f-0', math.max(0, math.min(last + 1, last_seq - tonumber(ARGV[4]) + 1))))
if last_seq > last then
  redis.call('ZADD', shard.to_archive, has_ended(ctl) and now or now + tonumber(ARGV[6]), ARGV[1])
  return { 'archived' }
end
if not has_ended(ctl) then
  redis.call('ZREM', shard.to_archive, ARGV[1])
  return { 'archived' }
end
-- What has duties left must still be there when they are done.
local duties = redis.call('ZSCORE', shard.held, ARGV[1])
local expires_at, owner = now + math.max(tonumber(ARGV[5]), duties and merge_within_ms or 0), { run_id = ARGV[1], tenant = ctl.tenant }
if segments == 1 then
  redis.call('ZREM', shard.to_archive, ARGV[1])
  expire_at(run, shard, owner, expires_at)
else
  redis.call('HSET', run.ctl, 'merge_due', 1, 'expires_at', string.format('%.0f', expires_at))
  redis.call('ZADD', shard.to_archive, now, ARGV[1])
  expire_at(run, shard, owner, expires_at + merge_within_ms)
end
return { 'expiring' }
