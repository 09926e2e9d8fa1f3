-- Whether claims still hold, and what has come into the inboxes of their runs. Writes nothing.
-- KEYS  per run: ctl, inbox
-- ARGV  1: JSON list of { epoch, claim_id, inbox_seen }
-- Reply per run: { held, unseen commands… } | { fenced }
-- include: ctl
-- include: claim
-- include: inbox
local replies = {}
for i, request in ipairs(cjson.decode(ARGV[1])) do
  local ctl = read_ctl(KEYS[2 * i - 1])
  if ctl and holds(ctl, request) then
    replies[i] = with_inbox('held', KEYS[2 * i], ctl, request.inbox_seen)
  else
    replies[i] = { 'fenced' }
  end
end
return replies
