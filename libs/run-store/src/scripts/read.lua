-- A run as it stands, in one piece.
-- KEYS  shard (6), run (7)
-- ARGV  1: `messages` to leave them out
-- Reply run, tenant, status, archived_seq, snapshot | missing
-- include: ctl
-- include: run-keys
-- include: stored
local ctl = read_ctl(run.ctl)
if not ctl or ctl.deleted_at then return { 'missing' } end
return { 'run', ctl.tenant, ctl.status, ctl.archived_seq, stored_state(run, ctl, ARGV[1] == 'messages') }
