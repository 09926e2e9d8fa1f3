-- KEYS 1 to 6 of every script that works on a shard.
local shard = { due = KEYS[1], held = KEYS[2], to_archive = KEYS[3], feed = KEYS[4], feed_n = KEYS[5], expiring = KEYS[6] }

-- The queue's keys come last; how many there are only its fragment knows.
local function keys_from(first)
  return { unpack(KEYS, first) }
end
