-- The line: runs that were told to wait, by place. A booking is "tokens due": a run that has not come `lapse_ms` after it was due holds up nobody;
-- its place is kept for it until `forget_ms` after.

local function leave_line(run_id)
  redis.call('ZREM', rates.line, run_id)
  redis.call('HDEL', rates.bookings, run_id)
end

-- How many stand before the run (before a new one: all of them) and are still to come, and their tokens.
local function before_in_line(run_id, ask, now)
  local place = redis.call('ZSCORE', rates.line, run_id)
  local runs = redis.call('ZRANGEBYSCORE', rates.line, '-inf', place and '(' .. place or '+inf')
  local count, sum = 0, 0
  local bookings = #runs > 0 and redis.call('HMGET', rates.bookings, unpack(runs)) or {}
  for i, booking in ipairs(bookings) do
    local tokens, due = counts_of(booking or nil)
    if due + ask.forget_ms < now then
      leave_line(runs[i])
    elseif due + ask.lapse_ms >= now then
      count, sum = count + 1, sum + math.min(tokens, ask.tokens_per_minute or tokens)
    end
  end
  return count, sum
end

-- Keeps the place that the run has, or gives it the last one; where the line is full it gets none.
local function stand_in_line(run_id, ask, due)
  if not redis.call('ZSCORE', rates.line, run_id) then
    if redis.call('ZCARD', rates.line) >= ask.line_limit then return end
    local last = redis.call('ZRANGE', rates.line, -1, -1, 'WITHSCORES')
    redis.call('ZADD', rates.line, (tonumber(last[2]) or 0) + 1, run_id)
  end
  redis.call('HSET', rates.bookings, run_id, string.format('%.0f %.0f', ask.tokens, due))
end
