-- What was used of a quota while nobody had read it from the ledger, by replica and moment: the ledger tells whoever reads it only
-- what other replicas have written. Takes the key that it is given; no arguments of the script.
-- Microseconds: what was settled so long before a reading is in the ledger; the size of a slot. Milliseconds: how long it is kept.
local WRITTEN, SLOT, LATE_MS = 400000, 100000, 10000

-- One for all windows of a quota that rolls: which of them is open may not be known.
local function lateKey(key)
  if isRolling(key) then return prefix .. 'late:' .. string.sub(key, #rolling + 1) end
  if string.sub(key, 1, #counted) == counted then
    return prefix .. 'late:' .. string.match(string.sub(key, #counted + 1), '^(.*):[^:]*$')
  end
  return prefix .. 'late:' .. string.sub(key, #prefix + 1)
end

local function noteLate(key, at, tokens, nano, requests)
  local late, field = lateKey(key), me .. ':' .. string.format('%.0f', floor(at / SLOT))
  local value = call('HGET', late, field)
  local sums = value and unpacked(value) or { 0, 0, 0 }
  call('HSET', late, field, pack({ sums[1] + tokens, sums[2] + nano, sums[3] + requests }))
  call('PEXPIRE', late, LATE_MS)
end

-- What the ledger may have lacked that this replica began to read then: its own is in there.
local function lateOf(key, readFrom)
  local tokens, nano, requests = 0, 0, 0
  local all = call('HGETALL', lateKey(key))
  for i = 1, #all, 2 do
    local replica, slot = string.match(all[i], '^(.*):([^:]*)$')
    if replica ~= me and (slot + 1) * SLOT >= readFrom - WRITTEN then
      local sums = unpacked(all[i + 1])
      tokens, nano, requests = tokens + sums[1], nano + sums[2], requests + sums[3]
    end
  end
  return tokens, nano, requests
end
