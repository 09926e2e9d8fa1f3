-- A run's control record, read once per script, and the store's clock.

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Nil when there is no such run.
local function read_ctl(key)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return nil end
  local ctl = {}
  for i = 1, #flat, 2 do ctl[flat[i]] = flat[i + 1] end
  return ctl
end

-- What a script has to write into the control record, gathered: one command writes it, into Redis and into its log.
local function changes()
  local flat = {}
  return {
    put = function(...)
      for _, value in ipairs({ ... }) do flat[#flat + 1] = value end
    end,
    write = function(key)
      if #flat > 0 then redis.call('HSET', key, unpack(flat)) end
    end,
  }
end

local function num(ctl, field) return tonumber(ctl[field] or '0') end

local function has_ended(ctl)
  local status = ctl.status
  return status == 'completed' or status == 'expired' or status == 'failed' or status == 'cancelled'
end
