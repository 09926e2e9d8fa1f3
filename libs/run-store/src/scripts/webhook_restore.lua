-- Puts back what was to be told of a run whose store was lost; one that is there is left alone.
-- KEYS  tenants
-- ARGV  1: JSON { keys, run_id, tenant, target, lane }; 2: its body
-- Reply restored | exists
-- include: ctl
-- include: named-key
-- include: webhooks
local new = cjson.decode(ARGV[1])
if redis.call('EXISTS', delivery_key(new.keys, new.run_id)) == 1 then return { 'exists' } end
new.body = ARGV[2]
add_delivery(new.keys, new.run_id, new)
return { 'restored' }
