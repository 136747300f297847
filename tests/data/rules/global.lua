limit = 3
return {}
