-- The duties of an ended run are done: what it has used is counted, and what is to be told of it is written down, once; its session goes on to the
-- next run, and nobody looks for its finish job any more.
-- KEYS  shard (6), run (7), queue
-- ARGV  1: run id; 2, 3, 4: how the keys of a session, of its queue and of a run's ctl are spelt; 5: grace in ms;
--       6: what the run has used (includes/count-use.lua), empty where nothing is known; 7: JSON of what is to be told (webhook-outbox.ts),
--       empty where nothing is; 8: its body
-- Reply finished | not_ended
-- include: ctl
-- include: queue
-- include: shard-keys
-- include: run-keys
-- include: named-key
-- include: count-use
-- include: webhooks
local ctl = read_ctl(run.ctl)
if ctl and not has_ended(ctl) then return { 'not_ended' } end
if ctl and ctl.counted ~= '1' and ARGV[6] ~= '' then
  count_use(cjson.decode(ARGV[6]))
  redis.call('HSET', run.ctl, 'counted', 1)
end

if ctl and ctl.told ~= '1' and not ctl.deleted_at and ARGV[7] ~= '' then
  local new = cjson.decode(ARGV[7])
  new.body = ARGV[8]
  add_delivery(new.keys, ARGV[1], new)
  redis.call('HSET', run.ctl, 'told', 1)
end

-- The next run that has not been ended while it waited; false where there is none.
local function next_of(queue)
  while true do
    local id = redis.call('LPOP', queue)
    local waiting = id and read_ctl(named_key(ARGV[4], id))
    if not id or (waiting and not has_ended(waiting)) then return id, waiting end
  end
end

local function begin(id, waiting)
  redis.call('HSET', named_key(ARGV[4], id), 'job_live', 1)
  redis.call('ZADD', shard.held, now_ms() + tonumber(ARGV[5]), id)
  add_job(keys_from(14), 'turn', id, num(waiting, 'job_n'), 'first', num(waiting, 'priority'))
end

local session = ctl and ctl.session and named_key(ARGV[2], ctl.session)
if session and redis.call('HGET', session, 'current') == ARGV[1] then
  local id, waiting = next_of(named_key(ARGV[3], ctl.session))
  redis.call('HSET', session, 'last', ctl.deleted_at and '' or ARGV[1], 'current', id or '')
  if id and num(waiting, 'not_before') > now_ms() then
    redis.call('ZADD', shard.due, num(waiting, 'not_before'), id)
  elseif id and waiting.job_live ~= '1' then
    begin(id, waiting)
  end
end
redis.call('ZREM', shard.held, ARGV[1])
return { 'finished' }
