-- Corrects how many deliveries of runs in a row have died, while their claims hold: who cannot be to blame is excused.
-- KEYS  per run: ctl
-- ARGV  1: JSON list of { epoch, claim_id }; 2: -1 or 1
-- Reply how many were corrected
-- include: ctl
-- include: claim
local corrected = 0
for i, request in ipairs(cjson.decode(ARGV[1])) do
  local ctl = read_ctl(KEYS[i])
  if ctl and holds(ctl, request) then
    redis.call('HSET', KEYS[i], 'deliveries', math.max(0, num(ctl, 'deliveries') + tonumber(ARGV[2])))
    corrected = corrected + 1
  end
end
return corrected
