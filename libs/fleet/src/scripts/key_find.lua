-- An API key by its hash, or by its id.
-- KEYS  1: keys; 2: ids by hash
-- ARGV  1: hash | id; 2: which
-- Reply key, "created JSON" | missing
local id = ARGV[2]
if ARGV[1] == 'hash' then id = redis.call('HGET', KEYS[2], ARGV[2]) end
local found = id and redis.call('HGET', KEYS[1], id)
if found then return { 'key', found } end
return { 'missing' }
