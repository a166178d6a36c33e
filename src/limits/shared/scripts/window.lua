-- The window of a quota that rolls: a pointer says when the one that is open began and names its counter. Takes the key that it
-- is given; no arguments of the script.
local rolling, counted = prefix .. 'quota:rolling:', prefix .. 'quota:window:'

local function isRolling(key) return string.sub(key, 1, #rolling) == rolling end

local function counterOf(key, w)
  return counted .. string.sub(key, #rolling + 1) .. ':' .. string.format('%.0f', w[NAME])
end

-- Kept for longer than it is open: what is not known has to be read.
local function keepWindow(key, w)
  call('SET', key, pack(w), 'PX', string.format('%.0f', w[SPAN] * 1000 + 7200000))
end

-- The last one, where it is known, and whether it is open. Where the server's clock was set back it begins anew, with all that was
-- used of it.
local function windowOf(key, text)
  if not text then return nil, false end
  local w = unpacked(text)
  if w[START] > now / 1000 + 1 then
    w[START] = floor(now / 1000)
    keepWindow(key, w)
  end
  return w, now < (w[START] + w[SPAN]) * 1000
end

-- The counter behind a key: of one that rolls that of the window that is open, if any is.
local function counterAt(key)
  if not isRolling(key) then return key end
  local w, isOpen = windowOf(key, call('GET', key))
  return isOpen and counterOf(key, w) or nil
end
