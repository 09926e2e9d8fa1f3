-- Ends a claim whose delivery decided nothing and must not count as one that died.
-- KEYS  shard (6), run (7)
-- ARGV  1: JSON { epoch, claim_id }
-- Reply handed_back | fenced
-- include: ctl
-- include: claim
-- include: run-keys
local ctl = read_ctl(run.ctl)
if not ctl or not holds(ctl, cjson.decode(ARGV[1])) then return { 'fenced' } end
redis.call('HSET', run.ctl, 'claim', '', 'deliveries', math.max(0, num(ctl, 'deliveries') - 1))
return { 'handed_back' }
