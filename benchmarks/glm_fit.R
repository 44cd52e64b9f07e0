# Time a loop of glm.fit. Arguments: a file of doubles (sets, n, p, responses,
# then features, positive votes and all votes), and a file for the answer.
files <- commandArgs(trailingOnly = TRUE)
con <- file(files[1], "rb")
d <- readBin(con, "double", 4)
sets <- d[1]; n <- d[2]; p <- d[3]; responses <- d[4]
x <- array(readBin(con, "double", sets * n * p), c(p, n, sets))
s <- array(readBin(con, "double", responses * sets * n), c(n, sets, responses))
m <- array(readBin(con, "double", responses * sets * n), c(n, sets, responses))
close(con)
design <- lapply(seq_len(sets), function(r) cbind(1, t(x[, , r])))
coef <- array(0, c(p + 1, sets, responses))
start <- proc.time()[["elapsed"]]
for (k in seq_len(responses)) for (r in seq_len(sets))
  coef[, r, k] <- glm.fit(design[[r]], s[, r, k] / m[, r, k], m[, r, k],
                          family = binomial())$coefficients
cat(proc.time()[["elapsed"]] - start)
con <- file(files[2], "wb")
writeBin(as.vector(coef), con)
close(con)
