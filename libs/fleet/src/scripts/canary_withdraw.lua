-- A run that was drawn and then not created takes no part. One that has ended has been created.
-- KEYS  trial (7)
-- ARGV  1: run id
-- Reply withdrawn | not_there
-- include: canary-keys
local record = redis.call('HGET', trial.runs, ARGV[1])
local arm = record and string.match(record, '^(%a+) %S+$')
if not arm then return { 'not_there' } end
redis.call('HDEL', trial.runs, ARGV[1])
redis.call('ZREM', trial.order[arm], ARGV[1])
return { 'withdrawn' }
