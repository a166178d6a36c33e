-- Drops some of what a dead replica holds. The records stay for an hour: should it come back, it finds what it held of the
-- buckets.
-- KEYS: none. ARGV, after the common ones: that replica, a cursor, after how many milliseconds one is dead.
-- Result: the next cursor, 0 at the end.
local dead, cursor, graceMs = ARGV[4], ARGV[5], tonumber(ARGV[6])
local replicas, leases = prefix .. 'replicas', prefix .. 'leases:' .. dead
local seen = tonumber(call('ZSCORE', replicas, dead) or 0)
if seen > now - graceMs then return '0' end
call('HDEL', leases, 's')
local found = call('HSCAN', leases, cursor, 'COUNT', 100)
for i = 1, #found[2], 2 do
  local id = found[2][i]
  if id ~= '#' then
    local rec = unpacked(found[2][i + 1])
    if rec[COUNTS] == 1 then
      for at = quotasOf(rec), #rec do changeHeld(rec[at], -rec[TOKENS], -rec[NANO], -1) end
      rec[COUNTS] = 0
      call('HSET', leases, id, pack(rec))
    end
  end
end
if found[1] == '0' then
  call('ZREM', replicas, dead)
  call('PEXPIRE', leases, 3600000)
end
return found[1]
