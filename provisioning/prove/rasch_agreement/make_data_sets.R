# Makes the data sets of provisioning/run agreement, and what eRm estimates from them.
# Needs Debian's r-cran-erm, r-cran-psychotools and r-cran-psychtools:
#   Rscript make_data_sets.R FOLDER [NAME ...]
suppressPackageStartupMessages(library(eRm))

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
wanted <- arguments[-1]

# Answers by the partial-credit model; `shift` makes items easy or hard for people.
simulate <- function(seed, people, items, categories, shift = 0, spread = 1.2) {
  set.seed(seed)
  theta <- rnorm(people, shift, spread)
  sapply(seq_len(items), function(item) {
    location <- rnorm(1, 0, 0.7)
    steps <- location + seq(-0.9, 0.9, length.out = max(categories - 1, 2))
    steps <- steps[seq_len(categories - 1)] + rnorm(categories - 1, 0, 0.25)
    logits <- outer(theta, 0:(categories - 1)) -
      rep(c(0, cumsum(steps)), each = people)
    chances <- exp(logits - apply(logits, 1, max))
    chances <- chances / rowSums(chances)
    rowSums(runif(people) > t(apply(chances, 1, cumsum)))
  })
}

# Answers by the rating-scale model: the same steps for all items.
simulate_rating_scale <- function(seed, people, items, steps) {
  set.seed(seed)
  theta <- rnorm(people, 0, 1.2)
  sapply(rnorm(items, 0, 0.6), function(location) {
    logits <- outer(theta, 0:length(steps)) -
      rep(c(0, cumsum(location + steps)), each = people)
    chances <- exp(logits) / rowSums(exp(logits))
    rowSums(runif(people) > t(apply(chances, 1, cumsum)))
  })
}

# People stop at some item and never reach the rest.
stop_early <- function(answers, share) {
  items <- ncol(answers)
  stopped <- which(runif(nrow(answers)) < share)
  last <- sample(seq(ceiling(items / 2), items - 1), length(stopped), replace = TRUE)
  for (n in seq_along(stopped)) {
    answers[stopped[n], (last[n] + 1):items] <- NA
  }
  answers
}

# Each answer is skipped with this chance.
skip <- function(answers, share) {
  answers[matrix(runif(length(answers)) < share, nrow(answers))] <- NA
  answers[rowSums(!is.na(answers)) >= 2, ]
}

# Half of the people get the first two thirds of the items, half the last.
two_booklets <- function(answers) {
  items <- ncol(answers)
  third <- floor(items / 3)
  first <- runif(nrow(answers)) < 0.5
  answers[first, (items - third + 1):items] <- NA
  answers[!first, 1:third] <- NA
  answers
}

public <- function(package, name) {
  data(list = name, package = package, envir = environment())
  get(name)
}

sets <- list(
  two_categories = list(RM, function() skip(simulate(1, 200, 10, 2), 0.02)),
  two_categories_long = list(RM, function() stop_early(simulate(2, 1000, 40, 2), 0.3)),
  three_categories = list(PCM, function() skip(simulate(3, 500, 5, 3), 0.1)),
  four_categories = list(PCM, function() stop_early(simulate(4, 2000, 12, 4), 0.3)),
  four_categories_easy = list(PCM, function() two_booklets(simulate(5, 5000, 9, 4, 1.2))),
  five_categories = list(PCM, function() skip(simulate(6, 2000, 6, 5), 0.1)),
  five_categories_large = list(PCM, function() skip(simulate(7, 20000, 5, 5), 0.1)),
  seven_categories = list(PCM, function() stop_early(simulate(8, 1500, 6, 7), 0.3)),
  rating_scale = list(RSM, function() {
    stop_early(simulate_rating_scale(19, 1500, 10, c(-1, 0.1, 0.9)), 0.3)
  }),
  rating_scale_small = list(RSM, function() skip(simulate_rating_scale(10, 300, 6, c(-0.8, 0.6)), 0.05)),
  public_pcmdat2 = list(PCM, function() public("eRm", "pcmdat2")),
  public_rsmdat = list(RSM, function() public("eRm", "rsmdat")),
  public_conspiracist_beliefs = list(PCM, function() {
    answers <- as.matrix(public("psychotools", "ConspiracistBeliefs2016")$resp)
    (answers - min(answers, na.rm = TRUE))[, 1:8]
  }),
  public_bfi_agreeableness = list(PCM, function() {
    answers <- as.matrix(public("psychTools", "bfi")[, paste0("A", 1:5)]) - 1
    answers[, 1] <- 5 - answers[, 1]
    answers[rowSums(!is.na(answers)) >= 2, ]
  })
)
for (name in if (length(wanted)) wanted else names(sets)) {
  began <- Sys.time()
  fit_model <- sets[[name]][[1]]
  answers <- sets[[name]][[2]]()
  colnames(answers) <- paste0("q", seq_len(ncol(answers)))
  rownames(answers) <- NULL
  model <- fit_model(answers)
  people <- suppressMessages(person.parameter(model))
  fit <- itemfit(people)
  if (model$model == "RM") {
    steps <- -model$betapar
    item <- colnames(answers)
    step <- rep(1, length(steps))
  } else {
    found <- thresholds(model)
    steps <- found$threshpar
    highest <- apply(answers, 2, max, na.rm = TRUE)
    item <- rep(colnames(answers), highest)
    step <- sequence(highest)
  }
  centre <- mean(steps)
  here <- file.path(folder, name)
  dir.create(here, showWarnings = FALSE, recursive = TRUE)
  write <- function(table, file) {
    connection <- gzfile(file.path(here, paste0(file, ".csv.gz")), "w")
    write.csv(table, connection, row.names = FALSE, na = "", quote = FALSE)
    close(connection)
  }
  write(answers, "answers")
  write(data.frame(item, step, threshold = round(steps - centre, 5)), "thresholds")
  write(data.frame(
    item = colnames(answers), infit = round(fit$i.infitMSQ, 5),
    outfit = round(fit$i.outfitMSQ, 5)
  ), "items")
  write(data.frame(
    row = seq_len(nrow(answers)),
    mle = round(people$theta.table[["Person Parameter"]] - centre, 5),
    is_extrapolated = as.integer(people$theta.table[["Interpolated"]])
  ), "persons")
  writeLines(model$model, file.path(here, "model.txt"))
  cat(name, nrow(answers), "people", ncol(answers), "items",
    format(round(difftime(Sys.time(), began, units = "secs"), 1)), "\n")
}
