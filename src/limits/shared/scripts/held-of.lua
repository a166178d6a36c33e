-- What leases hold of quotas. Takes the key that it is given; no arguments of the script.
local function changeHeld(key, tokens, nano, requests)
  if tokens == 0 and nano == 0 and requests == 0 then return end
  local q = quotaOf(call('GET', key))
  q[HELD_REQUESTS] = max(0, q[HELD_REQUESTS] + requests)
  q[HELD], q[HELD_NANO] = max(0, q[HELD] + tokens), max(0, q[HELD_NANO] + nano)
  keepQuota(key, q)
end

-- What a lease holds of quotas; nothing while its replica counts as dead.
local function heldBy(rec)
  if rec[COUNTS] == 1 then return rec[TOKENS], rec[NANO], 1 end
  return 0, 0, 0
end

local function quotasOf(rec) return REST + rec[BUCKETS] * 3 end
