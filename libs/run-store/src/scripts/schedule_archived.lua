-- The archive has a schedule as it was in this version. One that has changed since is due again; a removed one is forgotten after a time.
-- KEYS  1: schedule; 2: schedules to archive
-- ARGV  1: schedule id; 2: version; 3: ms to remember a removed one
-- Reply done | again
-- include: ctl
local version, removed_at = unpack(redis.call('HMGET', KEYS[1], 'version', 'removed_at'))
if version and version ~= ARGV[2] then
  redis.call('ZADD', KEYS[2], now_ms(), ARGV[1])
  return { 'again' }
end
redis.call('ZREM', KEYS[2], ARGV[1])
if removed_at then redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[3])) end
return { 'done' }
