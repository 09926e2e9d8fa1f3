-- KEYS 1 to 5 of scripts about one credential.
local rates = { granted = KEYS[1], flying = KEYS[2], calls = KEYS[3], line = KEYS[4], bookings = KEYS[5] }

-- They go by themselves when nobody asks any more.
local function keep_rates(ms)
  for _, key in pairs(rates) do
    if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
  end
end

-- What one sixtieth of a minute was granted: "requests tokens".
local function counts_of(text)
  local requests, tokens = string.match(text or '0 0', '^(%S+) (%S+)$')
  return tonumber(requests), tonumber(tokens)
end

local function put_counts(slot, requests, tokens)
  redis.call('HSET', rates.granted, string.format('%.0f', slot), string.format('%.0f %.0f', requests, tokens))
end

-- Places whose lease is over are nobody's.
local function end_leases(now)
  local ended = redis.call('ZRANGEBYSCORE', rates.flying, '-inf', now, 'LIMIT', 0, 1000)
  if #ended == 0 then return end
  redis.call('HDEL', rates.calls, unpack(ended))
  redis.call('ZREM', rates.flying, unpack(ended))
end
