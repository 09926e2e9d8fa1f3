-- Calls that wait for somebody's word: `pending` names them, `decided` those that have had one. Of several words the first counts.

local function includes(list, wanted)
  for _, each in ipairs(list) do
    if each == wanted then return true end
  end
  return false
end

-- Nil where the word may be taken.
local function refused_word(ctl, call)
  if includes(cjson.decode(ctl.decided or '[]'), call) then return { 'already_decided' } end
  if not includes(cjson.decode(ctl.pending or '[]'), call) then return { 'invalid_state', ctl.status } end
end

local function with_word(ctl, call)
  local decided = cjson.decode(ctl.decided or '[]')
  decided[#decided + 1] = call
  return cjson.encode(decided)
end
