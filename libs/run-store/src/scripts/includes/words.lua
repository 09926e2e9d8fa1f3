-- What a person's word is waited for: `pending` names it (`awaited`: with what it is about, so that a word on something else is none),
-- `decided` what has had one (`subject`). Of several words the first counts.

local function includes(list, wanted)
  for _, each in ipairs(list) do
    if each == wanted then return true end
  end
  return false
end

-- Nil where the word may be taken.
local function refused_word(ctl, word)
  if includes(cjson.decode(ctl.decided or '[]'), word.subject) then return { 'already_decided' } end
  if not includes(cjson.decode(ctl.pending or '[]'), word.awaited) then return { 'invalid_state', ctl.status } end
end

local function with_word(ctl, word)
  local decided = cjson.decode(ctl.decided or '[]')
  decided[#decided + 1] = word.subject
  return cjson.encode(decided)
end
