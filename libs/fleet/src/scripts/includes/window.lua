-- Windows over what was granted. A window of n sixtieths of a minute, wherever it begins, lies within n + 1 of them.

-- The last minute's, oldest first; what is older is removed.
local function granted_lately(slot)
  local lately = {}
  local flat = redis.call('HGETALL', rates.granted)
  for i = 1, #flat, 2 do
    local at = tonumber(flat[i])
    local requests, tokens = counts_of(flat[i + 1])
    if at and at > slot - 61 then
      lately[#lately + 1] = { at = at, requests = requests, tokens = tokens }
    elseif at then
      redis.call('HDEL', rates.granted, flat[i])
    end
  end
  table.sort(lately, function(a, b) return a.at < b.at end)
  return lately
end

-- Ms until `wanted` are no more than `limit` together with what any window of `length` sixtieths has then; 0 = now.
local function wait_for_window(lately, what, wanted, limit, length, now, slot_ms)
  local slot, span = math.floor(now / slot_ms), length + 1
  local rounds = math.max(0, math.ceil(wanted / limit) - 1)
  local over, wait = wanted - (rounds + 1) * limit, 0
  for _, each in ipairs(lately) do
    if each.at > slot - span then over = over + each[what] end
  end
  for _, each in ipairs(lately) do
    if over <= 0 then break end
    if each.at > slot - span then
      over = over - each[what]
      wait = (each.at + span) * slot_ms - now
    end
  end
  return wait + rounds * span * slot_ms
end
