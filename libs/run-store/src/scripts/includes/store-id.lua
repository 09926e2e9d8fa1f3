-- Which Redis this is: another after each restart and after each failover. Empty where this user may not ask.
local function store_id()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end
