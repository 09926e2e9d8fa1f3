-- Takes a request, its tokens and a place in flight at once, or nothing of it and a place in line.
-- KEYS  of one credential (5)
-- ARGV  1: JSON { id, run_id, tokens, lease_ms, requests_per_minute?, tokens_per_minute?, in_flight?, minute_ms, lapse_ms, forget_ms, line_limit }
-- Reply granted | wait, ms until the run's turn
-- include: clock
-- include: rates
-- include: window
-- include: line
-- include: places
local ask, now = cjson.decode(ARGV[1]), now_ms()
local slot_ms = ask.minute_ms / 60
end_leases(now)
if redis.call('HEXISTS', rates.calls, ask.id) == 1 then return { 'granted' } end
local slot = math.floor(now / slot_ms)
local lately, cost = granted_lately(slot), math.min(ask.tokens, ask.tokens_per_minute or ask.tokens)
local others, their_tokens = before_in_line(ask.run_id, ask, now)
local wait = 0

-- The rate in any minute; and of it a third in any quarter of one, or what one request needs, so that no burst meets a provider that counts in seconds.
local function within(what, wanted, limit, own)
  if not limit or own == 0 then return end
  local third = math.max(math.ceil(limit / 3), own)
  wait = math.max(wait, wait_for_window(lately, what, wanted, limit, 60, now, slot_ms), wait_for_window(lately, what, wanted, third, 15, now, slot_ms))
end
within('requests', others + 1, ask.requests_per_minute, 1)
within('tokens', their_tokens + cost, ask.tokens_per_minute, cost)
if ask.in_flight then wait = math.max(wait, wait_for_place(redis.call('ZCARD', rates.flying) + others + 1 - ask.in_flight, ask, slot_ms)) end
wait = math.ceil(wait)
if wait > 0 then
  stand_in_line(ask.run_id, ask, now + wait)
  keep_rates(wait + ask.forget_ms)
  return { 'wait', wait }
end
leave_line(ask.run_id)
grant(ask, cost, slot, now)
keep_rates(ask.lease_ms + ask.forget_ms)
return { 'granted' }
