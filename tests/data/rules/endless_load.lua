while true do local _ = 1 end
