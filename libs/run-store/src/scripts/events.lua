-- Events after a seq, and what the stream still holds: a read below a trimmed stream's head would skip silently.
-- KEYS  shard (6), run (7)
-- ARGV  1: seq; 2: most events
-- Reply events, first_seq held (0: none), last_seq, events, where the run moved (see `moves`) | missing
-- include: run-keys
local last_seq, deleted_at, moves = unpack(redis.call('HMGET', run.ctl, 'last_seq', 'deleted_at', 'moves'))
if not last_seq or deleted_at then return { 'missing' } end
local head = redis.call('XRANGE', run.events, '-', '+', 'COUNT', 1)[1]
local events = {}
for i, entry in ipairs(redis.call('XRANGE', run.events, '(' .. ARGV[1] .. '-0', '+', 'COUNT', ARGV[2])) do events[i] = entry[2][2] end
return { 'events', head and string.match(head[1], '^%d+') or '0', last_seq, events, moves or '' }
