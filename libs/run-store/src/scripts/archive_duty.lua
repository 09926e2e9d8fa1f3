-- What is left to do in the archive for a run that has nothing more to be sealed.
-- KEYS  shard (6), run (7)
-- ARGV  1: run id
-- Reply remove, tenant, when in epoch ms | merge | none (it is due no more, unless events are there to be sealed)
-- include: ctl
-- include: shard-keys
-- include: run-keys
local ctl = read_ctl(run.ctl)
if ctl and ctl.deleted_at then return { 'remove', ctl.tenant, ctl.deleted_at } end
if ctl and ctl.merge_due == '1' then return { 'merge' } end
return { 'none' }
