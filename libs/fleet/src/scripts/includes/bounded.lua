-- Makes room in a hash of JSON for one more field: where it is full, what has the lowest number in `by` goes.
local function make_room(key, field, limit, by)
  if redis.call('HLEN', key) < limit or redis.call('HEXISTS', key, field) == 1 then return end
  local first, lowest
  local flat = redis.call('HGETALL', key)
  for i = 1, #flat, 2 do
    local number = cjson.decode(flat[i + 1])[by]
    if not lowest or number < lowest then first, lowest = flat[i], number end
  end
  redis.call('HDEL', key, first)
end
