-- Reserves an idempotency key for a run id that does not exist yet: create-only, forgotten after a time.
-- KEYS  1: the reservation
-- ARGV  1: run id; 2: hash of the request's body; 3: not after, epoch ms; 4: ms to keep it
-- Reply reserved, run_id, body_hash | held, run_id, body_hash | too_late
-- include: ctl
local stored = redis.call('HMGET', KEYS[1], 'run_id', 'body_hash')
if stored[1] then
  -- The same id asking again is a client that resends.
  return { stored[1] == ARGV[1] and 'reserved' or 'held', stored[1], stored[2] }
end
if now_ms() > tonumber(ARGV[3]) then return { 'too_late' } end
redis.call('HSET', KEYS[1], 'run_id', ARGV[1], 'body_hash', ARGV[2])
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[4]))
return { 'reserved', ARGV[1], ARGV[2] }
