-- Where a run went on under another Redis than it had been written by: what readers have seen beyond that may be lost.
-- KEYS  shard (6), run (7)
-- Reply moves, then seq and when in epoch ms of each, oldest first
-- include: ctl
-- include: run-keys
-- include: store-id
local store, moves, last_seq = unpack(redis.call('HMGET', run.ctl, 'store', 'moves', 'last_seq'))
local reply = { 'moves' }
if not last_seq then return reply end
for seq, at in string.gmatch(moves or '', '(%d+):(%d+)') do
  reply[#reply + 1] = seq
  reply[#reply + 1] = at
end
-- Nobody has claimed it since.
if store ~= store_id() then
  reply[#reply + 1] = last_seq
  reply[#reply + 1] = string.format('%.0f', now_ms())
end
return reply
