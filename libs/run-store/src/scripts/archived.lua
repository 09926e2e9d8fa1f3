-- The sealed range is safe: the watermark moves, the stream is trimmed, and an ended run whose log is safe whole expires.
-- KEYS  shard (6), run (7)
-- ARGV  1: run id; 2, 3: first and last seq; 4: events to keep in the stream; 5: retention in ms; 6: ms until the next archiving
-- Reply archived | expiring | not_sealed (nothing was changed)
-- include: ctl
-- include: shard-keys
-- include: run-keys
local ctl = read_ctl(run.ctl)
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if not ctl or num(ctl, 'sealed_first') ~= first or num(ctl, 'sealed_last') ~= last then return { 'not_sealed' } end

local now, last_seq = now_ms(), num(ctl, 'last_seq')
redis.call('HSET', run.ctl, 'archived_seq', last, 'sealed_first', 0, 'sealed_last', 0)
redis.call('XTRIM', run.events, 'MINID', string.format('%.0f-0', math.max(0, math.min(last + 1, last_seq - tonumber(ARGV[4]) + 1))))
if last_seq > last then
  redis.call('ZADD', shard.to_archive, has_ended(ctl) and now or now + tonumber(ARGV[6]), ARGV[1])
  return { 'archived' }
end
redis.call('ZREM', shard.to_archive, ARGV[1])
if not has_ended(ctl) then return { 'archived' } end
local retention = tonumber(ARGV[5])
for _, key in pairs(run) do redis.call('PEXPIRE', key, retention) end
redis.call('ZADD', shard.expiring, now + retention, ARGV[1] .. ' ' .. ctl.tenant)
return { 'expiring' }
