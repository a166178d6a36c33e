-- A quota as it is stored. Takes the key that it is given; no arguments of the script.
local function quotaOf(text)
  if text then return unpacked(text) end
  return { 0, 0, 0, 0, 0 }
end

-- Unused for two hours, it is read anew when it is needed.
local function keepQuota(key, q) call('SET', key, pack(q), 'PX', '7200000') end
