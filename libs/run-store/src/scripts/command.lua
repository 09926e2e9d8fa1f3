-- Accepts a command into a run's inbox, and gives the run a job where it has none. Idempotent by command id.
-- KEYS  shard (6), run (7), queue
-- ARGV  1: JSON { run_id, command_id, type, word (what a person's word is about: { subject, awaited }), entry, not_after_ms, inbox_limit, ids_kept, grace_ms }
--       2, 3: how the keys of a session and of a run's ctl are spelt
-- Reply missing | accepted | already_decided | too_late | inbox_full | invalid_state, status | behind, the run of its session that goes before it
-- include: ctl
-- include: queue
-- include: shard-keys
-- include: run-keys
-- include: jobs
-- include: words
-- include: accept
-- include: named-key
-- include: session
local command = cjson.decode(ARGV[1])
-- A run that was restored as paused may still have its turn to wait for.
local before = command.type == 'resume' and run_before(read_ctl(run.ctl), command.run_id, ARGV[2], ARGV[3])
if before then return { 'behind', before } end
return accept_command(run, shard, keys_from(14), command)
