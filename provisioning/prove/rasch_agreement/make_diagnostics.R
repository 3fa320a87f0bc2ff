# Adds to data sets of make_data_sets.R what R says of groups, residuals and clusters.
# Needs Debian's r-cran-erm, r-cran-survey and r-cran-sandwich:
#   Rscript make_diagnostics.R FOLDER
# Groups, schools and weights follow from the number of the row, from 1 on.
suppressPackageStartupMessages({
  library(eRm)
  library(survey)
  library(sandwich)
})

folder <- commandArgs(trailingOnly = TRUE)[1]
sets <- c("two_categories", "five_categories", "public_bfi_agreeableness")

read <- function(here, file) read.csv(gzfile(file.path(here, paste0(file, ".csv.gz"))))
write <- function(table, here, file) {
  connection <- gzfile(file.path(here, paste0(file, ".csv.gz")), "w")
  write.csv(table, connection, row.names = FALSE, na = "", quote = FALSE)
  close(connection)
}

# The log-likelihood of answers, given the scores: one polynomial for each pattern.
conditional <- function(answers, steps) {
  known <- !is.na(answers)
  pattern <- apply(known, 1, paste, collapse = "")
  value <- 0
  for (each in unique(pattern)) {
    rows <- which(pattern == each)
    items <- which(known[rows[1], ])
    if (!length(items)) next
    weights <- lapply(items, function(item) exp(-c(0, cumsum(steps[[item]]))))
    sums <- Reduce(function(a, b) {
      product <- rep(0, length(a) + length(b) - 1)
      for (place in seq_along(b)) {
        at <- place:(place + length(a) - 1)
        product[at] <- product[at] + a * b[place]
      }
      product
    }, weights)
    chosen <- answers[rows, items, drop = FALSE]
    for (place in seq_along(items)) {
      value <- value + sum(log(weights[[place]][chosen[, place] + 1]))
    }
    value <- value - sum(log(sums[rowSums(chosen) + 1]))
  }
  value
}

# One shift of all thresholds of each item; their mean is 0.
shifts <- function(answers, steps) {
  size <- length(steps)
  all <- function(free) c(free, -sum(free))
  minus <- function(free) -conditional(answers, Map(`+`, steps, all(free)))
  end <- optim(rep(0, size - 1), minus, method = "BFGS", hessian = TRUE,
    control = list(reltol = 1e-14, maxit = 500))
  design <- rbind(diag(size - 1), -1)
  list(shift = all(end$par), covariance = design %*% solve(end$hessian) %*% t(design))
}

# Warm's measures: where the score is the expected one plus half the skew of the
# information.
measures <- function(answers, steps) {
  moment <- function(theta, item) {
    category <- 0:length(steps[[item]])
    chance <- exp(category * theta - c(0, cumsum(steps[[item]])))
    chance <- chance / sum(chance)
    mean <- sum(category * chance)
    c(mean, sum(chance * (category - mean)^2), sum(chance * (category - mean)^3))
  }
  apply(answers, 1, function(person) {
    items <- which(!is.na(person))
    highest <- sapply(steps[items], length)
    score <- sum(person[items])
    if (!length(items) || score == 0 || score == sum(highest)) {
      return(rep(NA, 1 + 2 * length(steps)))
    }
    surplus <- function(theta) {
      sums <- rowSums(sapply(items, function(item) moment(theta, item)))
      score - sums[1] + sums[3] / (2 * sums[2])
    }
    theta <- uniroot(surplus, c(-20, 20), tol = 1e-11)$root
    residual <- standardised <- rep(NA, length(steps))
    for (item in items) {
      of_item <- moment(theta, item)
      residual[item] <- person[item] - of_item[1]
      standardised[item] <- residual[item] / sqrt(of_item[2])
    }
    c(theta, residual, standardised)
  })
}

for (name in sets) {
  here <- file.path(folder, name)
  answers <- as.matrix(read(here, "answers"))
  table <- read(here, "thresholds")
  steps <- split(table$threshold, factor(table$item, colnames(answers)))
  size <- length(steps)
  number <- seq_len(nrow(answers))
  groups <- lapply(c(1, 0), function(odd) shifts(answers[number %% 2 == odd, ], steps))
  difference <- groups[[2]]$shift - groups[[1]]$shift
  error <- sqrt(diag(groups[[1]]$covariance + groups[[2]]$covariance))
  p <- 2 * pnorm(-abs(difference / error))
  wald <- rep(NA, size)
  if (name == "two_categories") {
    test <- Waldtest(RM(answers), splitcr = number %% 2)
    wald <- -test$coef.table[, 1]
  }
  write(data.frame(item = colnames(answers), difference = round(difference, 6),
    error = round(error, 6), adjusted = round(p.adjust(p, "BH"), 6),
    wald = round(wald, 5)), here, "dif")

  of_people <- measures(answers, steps)
  q3 <- cor(t(of_people[1 + seq_len(size), ]), use = "pairwise.complete.obs")
  pairs <- which(upper.tri(q3), arr.ind = TRUE)
  write(data.frame(first = colnames(answers)[pairs[, 1]],
    second = colnames(answers)[pairs[, 2]], q3 = round(q3[pairs], 6)), here, "q3")
  standardised <- cor(t(of_people[1 + size + seq_len(size), ]),
    use = "pairwise.complete.obs")

  frame <- data.frame(theta = of_people[1, ], school = (number - 1) %/% 20,
    weight = 1 + number %% 3, two = number %% 2, three = number %% 3)
  frame <- frame[!is.na(frame$theta), ]
  clusters <- svydesign(~school, data = frame, weights = ~1)
  weighted <- svydesign(~school, data = frame, weights = ~weight)
  people <- nrow(frame)
  targets <- list(
    data.frame(two = 0:1, Freq = c(0.6, 0.4) * people),
    data.frame(three = 0:2, Freq = c(0.5, 0.3, 0.2) * people))
  raked <- weights(rake(svydesign(~1, data = frame, weights = ~1), list(~two, ~three),
    targets, control = list(maxit = 200, epsilon = 1e-10)))
  interval <- prop.test(sum(frame$theta > 0), people, correct = FALSE)$conf.int
  line <- lm(theta ~ 1, frame)
  write(data.frame(
    name = c("eigenvalue", "clustered", "sandwich", "weighted", "raked_mean",
      "design_effect", "low", "high"),
    value = round(c(
      eigen(standardised)$values[1], SE(svymean(~theta, clusters)),
      sqrt(vcovCL(line, ~school, type = "HC0", cadjust = TRUE)),
      SE(svymean(~theta, weighted)), sum(raked * frame$theta) / sum(raked),
      people * sum(raked^2) / sum(raked)^2, interval), 7)), here, "estimates")
  cat(name, "\n")
}
