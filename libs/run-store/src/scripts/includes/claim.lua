-- The fence: who may write. Epoch and claim id are one comparison; an empty stored claim id is held by nobody.

local function holds(ctl, claim)
  return ctl.claim ~= '' and ctl.claim == claim.claim_id and num(ctl, 'epoch') == claim.epoch
end

-- The last write of this very claim, sent again: after a cut connection the client cannot know that it happened.
local function is_repeat(ctl, write)
  return ctl.commit_id == write.commit_id and ctl.commit_claim == write.claim_id and num(ctl, 'commit_epoch') == write.epoch
end

local function may_write(ctl, write)
  return holds(ctl, write) and num(ctl, 'last_seq') == write.expected_seq
end
