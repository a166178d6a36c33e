-- A replica says that it is there.
-- KEYS: none. ARGV, after the common ones: the number of its session, or nothing where it only goes on; after how many
-- milliseconds another one is dead.
-- Result: the time, how many there are, whether this one counted as dead or unknown, since when the server remembers, the last
-- operation that it had of it, the dead ones, and the server's process of which all quotas are known to be up to date.
local session, graceMs = ARGV[4], tonumber(ARGV[5])
local replicas, leases = prefix .. 'replicas', prefix .. 'leases:' .. me
local time = floor(now)
local born = call('GET', prefix .. 'born')
if not born then
  born = string.format('%.0f', micros)
  call('SET', prefix .. 'born', born)
end
local isNew = call('ZADD', replicas, time, me)
if session ~= '' then call('HSET', leases, 's', session) end
call('PERSIST', leases)
-- The clock was set back: who beats from here on counts from here on.
for _, ahead in ipairs(call('ZRANGEBYSCORE', replicas, '(' .. (time + graceMs), '+inf')) do call('ZADD', replicas, time, ahead) end
local dead = call('ZRANGEBYSCORE', replicas, '-inf', time - graceMs, 'LIMIT', 0, 10)
local last = call('HGET', leases, '#') or '0'
return { micros, call('ZCARD', replicas) - #dead, isNew, born, last, dead, call('GET', prefix .. 'run') or '' }
