-- Usage: wrk … -s requests.lua URL -- FILE
-- FILE holds one request a line: the path, a tab, and the App Check token (may be empty). All requests are
-- formatted before the clock starts; a file of one line stays static, so wrk does not call Lua for it.
-- MEAN_PAUSE_MILLISECONDS in the environment: each connection waits about so long before each request.
local requests, position = {}, 0

local pause = tonumber(os.getenv("MEAN_PAUSE_MILLISECONDS") or "0")
if pause > 0 then
    delay = function() return math.random(0, 2 * pause) end
end

local function set(path, token)
    wrk.path = path
    wrk.headers["X-Firebase-AppCheck"] = token ~= "" and token or nil
end

init = function(arguments)
    local lines = {}
    for line in io.lines(arguments[1]) do lines[#lines + 1] = line end
    if #lines == 1 then
        set(lines[1]:match("^(.-)\t(.*)$"))
        return
    end
    for number, line in ipairs(lines) do
        set(line:match("^(.-)\t(.*)$"))
        requests[number] = wrk.format("GET")
    end
    request = function()
        position = position % #requests + 1
        return requests[position]
    end
end

done = function(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        'RESULT {"requests": %d, "microseconds": %d, "bytes": %d, "error_statuses": %d, ' ..
        '"socket_errors": %d, "p50_us": %d, "p99_us": %d}\n',
        summary.requests, summary.duration, summary.bytes, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
