-- A replica ends in order. Where it left something open, that is dropped as of a dead one.
-- KEYS: none. ARGV: the common ones.
-- Result: OK, or OPEN where something was left.
local leases = prefix .. 'leases:' .. me
if call('HLEN', leases) > call('HEXISTS', leases, 's') + call('HEXISTS', leases, '#') then
  return redis.status_reply('OPEN')
end
call('ZREM', prefix .. 'replicas', me)
call('DEL', leases)
return redis.status_reply('OK')
