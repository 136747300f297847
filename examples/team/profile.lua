-- The team's profile: the rules that a review runs, the team's limits, and its names for parts of a network.
return {
  rules = "vision or tensor_overflow",
  collections = {
    features = "op:ReLU or op:MaxPool",  -- the outputs of the backbone
    kernels = "conv*.weight",
  },
  params = { ["vision-dead-features"] = { share = 99 } },
}
