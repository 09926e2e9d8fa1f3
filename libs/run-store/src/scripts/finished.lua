-- The duties of an ended run are done: nobody looks for its finish job any more.
-- KEYS  shard (6), run (7)
-- ARGV  1: run id
-- Reply finished | not_ended
-- include: ctl
-- include: shard-keys
-- include: run-keys
local ctl = read_ctl(run.ctl)
if ctl and not has_ended(ctl) then return { 'not_ended' } end
redis.call('ZREM', shard.held, ARGV[1])
return { 'finished' }
