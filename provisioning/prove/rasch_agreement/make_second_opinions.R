# Adds to data sets of make_diagnostics.R what other packages say of the same answers:
# psychotools of thresholds with their errors and, of two categories, of differences of
# groups; metafor of how far schools differ.
# Needs Debian's r-cran-psychotools and r-cran-metafor:
#   Rscript make_second_opinions.R FOLDER
# Groups and schools follow from the number of the row, as there.
suppressPackageStartupMessages({
  library(psychotools)
  library(metafor)
})

folder <- commandArgs(trailingOnly = TRUE)[1]
sets <- c("two_categories", "five_categories", "public_bfi_agreeableness")

read <- function(here, file) read.csv(gzfile(file.path(here, paste0(file, ".csv.gz"))))
write <- function(table, here, file) {
  connection <- gzfile(file.path(here, paste0(file, ".csv.gz")), "w")
  write.csv(table, connection, row.names = FALSE, na = "", quote = FALSE)
  close(connection)
}

# Thresholds around their mean, with their covariances.
estimate <- function(answers) {
  if (max(answers, na.rm = TRUE) == 1) {
    thresholds <- itempar(raschmodel(answers))
  } else {
    thresholds <- threshpar(pcmodel(answers))
  }
  values <- unlist(lapply(thresholds, as.numeric))
  around <- diag(length(values)) - 1 / length(values)
  list(values = as.numeric(around %*% values),
    covariance = around %*% vcov(thresholds) %*% t(around))
}

for (name in sets) {
  here <- file.path(folder, name)
  answers <- as.matrix(read(here, "answers"))
  number <- seq_len(nrow(answers))
  all <- estimate(answers)
  difference <- error <- rep(NA, length(all$values))
  if (name == "two_categories") {
    groups <- lapply(c(1, 0), function(odd) estimate(answers[number %% 2 == odd, ]))
    difference <- groups[[2]]$values - groups[[1]]$values
    error <- sqrt(diag(groups[[1]]$covariance + groups[[2]]$covariance))
  }
  write(data.frame(threshold = round(all$values, 6),
    error = round(sqrt(diag(all$covariance)), 6), difference = round(difference, 6),
    error_of_difference = round(error, 6)), here, "psychotools")

  # The mean score of each school's people who answered all items.
  scores <- rowSums(answers)
  school <- (number - 1) %/% 20
  known <- !is.na(scores)
  people <- tapply(scores[known], school[known], length)
  means <- tapply(scores[known], school[known], mean)
  around <- sum((scores[known] - means[as.character(school[known])])^2)
  within <- around / (sum(people) - length(people))
  model <- rma(as.numeric(means), within / as.numeric(people), method = "DL")
  write(data.frame(name = c("mean", "between", "scatter"),
    value = round(c(model$beta, model$tau2, model$QE), 7)), here, "metafor")
  cat(name, "\n")
}
