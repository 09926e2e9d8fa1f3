-- How a job of ours is written in BullMQ. Follows BullMQ's own script, wrapped as `queue_bullmq_add(KEYS, ARGV)`: its
-- parameters shadow the globals, and its returns end that function only.
-- keys  as turn-jobs.ts lists them: marker, meta, id, prioritized, delayed, completed, active, events, pc

-- Lower goes first, FIFO inside one class. Runs that have begun are finished before others begin.
local function queue_class(urgency, priority)
  if urgency == 'front' then return 1 end
  if urgency == 'begun' then return 1 + priority end
  return 1000 + priority
end

-- What every key of this queue begins with, taken from that of `meta`.
local function queue_base(keys)
  return string.sub(keys[2], 1, -5)
end

local function queue_job_id(kind, run_id, n)
  return kind == 'finish' and run_id .. '-finish' or run_id .. '-' .. string.format('%.0f', n)
end

local function add_job(keys, kind, run_id, n, urgency, priority)
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local data = kind == 'finish' and { run_id = run_id } or { run_id = run_id, n = n }
  -- One attempt: our own log knows failures, so the queue keeps nothing of a job that has ended.
  local options = { priority = queue_class(urgency, priority), attempts = 1, removeOnComplete = true, removeOnFail = true }
  queue_bullmq_add(keys, {
    cmsgpack.pack({ queue_base(keys), queue_job_id(kind, run_id, n), kind, now }), cjson.encode(data), cmsgpack.pack(options),
  })
end

local function has_job(keys, kind, run_id, n)
  return redis.call('EXISTS', queue_base(keys) .. queue_job_id(kind, run_id, n)) == 1
end
