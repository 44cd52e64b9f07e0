# Time a loop of glm.fit. Arguments: a file of doubles (sets, n, p, votes of an
# item, then features and positive votes), and a file for the answer.
files <- commandArgs(trailingOnly = TRUE)
con <- file(files[1], "rb")
d <- readBin(con, "double", 4)
sets <- d[1]; n <- d[2]; p <- d[3]; m <- rep(d[4], n)
x <- array(readBin(con, "double", sets * n * p), c(p, n, sets))
s <- array(readBin(con, "double", sets * n), c(n, sets))
close(con)
design <- lapply(seq_len(sets), function(r) cbind(1, t(x[, , r])))
coef <- array(0, c(p + 1, sets))
start <- proc.time()[["elapsed"]]
for (r in seq_len(sets))
  coef[, r] <- glm.fit(design[[r]], s[, r] / m, m, family = binomial())$coefficients
cat(proc.time()[["elapsed"]] - start)
con <- file(files[2], "wb")
writeBin(as.vector(coef), con)
close(con)
