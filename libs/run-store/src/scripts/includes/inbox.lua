-- The inbox holds the commands numbered inbox_done + 1 to inbox_in, in order.

local function inbox_after(key, ctl, seen)
  return redis.call('LRANGE', key, math.max(0, seen - num(ctl, 'inbox_done')), -1)
end

-- A reply: its word, then the commands that the caller has not seen.
local function with_inbox(word, key, ctl, seen)
  local reply = inbox_after(key, ctl, seen)
  table.insert(reply, 1, word)
  return reply
end
