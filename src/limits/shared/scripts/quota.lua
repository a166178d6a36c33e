-- A quota as it is stored. Takes the key that it is given; no arguments of the script.
local function quotaOf(text)
  if not text then return { 0, 0, 0, 0, 0, 0, 0, 0 } end
  local q = unpacked(text)
  -- A replica of before these were counted may have written it.
  q[USED_REQUESTS], q[HELD_REQUESTS] = q[USED_REQUESTS] or 0, q[HELD_REQUESTS] or 0
  q[FORGOTTEN] = q[FORGOTTEN] or 0
  return q
end

-- Unused for two hours, it is read anew when it is needed.
local function keepQuota(key, q) call('SET', key, pack(q), 'PX', '7200000') end
