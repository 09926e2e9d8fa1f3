-- Which Redis this is: another after each restart and after each failover. Empty where this user may not ask.
local function store_id()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end

-- What a run's control record says once it is known what another Redis had lost of it: the newest moves are kept.
local function moved_to(ctl, seq, at, epoch)
  local moves = (ctl.moves or '') .. string.format('%.0f:%.0f:%.0f ', seq, at, epoch)
  return #moves > 500 and string.match(moves, ' (.*)$') or moves
end
