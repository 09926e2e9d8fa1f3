-- A duty in the archive is done. A merged run expires at its time; a deleted one is removed a second time, then only known as such.
-- KEYS  shard (6), run (7)
-- ARGV  1: run id; 2: merge | remove; 3: ms until the second removal; 4: ms to remember a deleted run
-- Reply done | other (the run has another duty by now; nothing was changed)
-- include: ctl
-- include: shard-keys
-- include: run-keys
-- include: expiry
local ctl, now = read_ctl(run.ctl), now_ms()
local duty = ctl and (ctl.deleted_at and 'remove' or ctl.merge_due == '1' and 'merge')
if duty ~= ARGV[2] then return { 'other' } end
if duty == 'merge' then
  redis.call('HDEL', run.ctl, 'merge_due')
  redis.call('ZREM', shard.to_archive, ARGV[1])
  expire_at(run, shard, { run_id = ARGV[1], tenant = ctl.tenant }, num(ctl, 'expires_at'))
elseif num(ctl, 'removals') == 0 then
  redis.call('HSET', run.ctl, 'removals', 1)
  redis.call('ZADD', shard.to_archive, now + tonumber(ARGV[3]), ARGV[1])
elseif redis.call('ZSCORE', shard.to_archive, ARGV[1]) then
  redis.call('ZREM', shard.to_archive, ARGV[1])
  redis.call('PEXPIRE', run.ctl, tonumber(ARGV[4]))
end
return { 'done' }
