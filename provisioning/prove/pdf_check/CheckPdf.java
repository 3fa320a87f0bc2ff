import java.io.File;
import org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider;
import org.verapdf.pdfa.Foundries;
import org.verapdf.pdfa.PDFAParser;
import org.verapdf.pdfa.PDFAValidator;
import org.verapdf.pdfa.flavours.PDFAFlavour;
import org.verapdf.pdfa.results.TestAssertion;
import org.verapdf.pdfa.results.ValidationResult;

/** Prints the verdict on each file against PDF/UA-1, and the rules that it breaks. */
public class CheckPdf {
    private static final int MOST_SHOWN = 20;

    public static void main(String[] names) throws Exception {
        VeraGreenfieldFoundryProvider.initialise();
        boolean allPass = true;
        for (String name : names) {
            PDFAFlavour flavour = PDFAFlavour.PDFUA_1;
            try (PDFAParser parser =
                            Foundries.defaultInstance().createParser(new File(name), flavour);
                    PDFAValidator validator =
                            Foundries.defaultInstance()
                                    .createValidator(flavour, MOST_SHOWN, false, false, false)) {
                ValidationResult result = validator.validate(parser);
                allPass &= result.isCompliant();
                String verdict = result.isCompliant() ? "passes" : "FAILS";
                System.out.printf("%s %s, %d checks%n", name, verdict, result.getTotalAssertions());
                for (TestAssertion one : result.getTestAssertions()) {
                    if (one.getStatus() == TestAssertion.Status.FAILED) {
                        System.out.printf(
                                "  %s-%d: %s (%s)%n",
                                one.getRuleId().getClause(),
                                one.getRuleId().getTestNumber(),
                                one.getMessage(),
                                one.getLocation().getContext());
                    }
                }
            }
        }
        System.exit(allPass ? 0 : 1);
    }
}
